"""What all topics adapters do alike: place keys, read limits, admit batches, and say what is wrong in one voice."""
