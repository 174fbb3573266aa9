"""A run as one HTML file that opens offline: a picture first, then every decision with its formula."""
