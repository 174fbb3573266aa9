"""What is kept in plain files of the project's work folder."""
