"""Images: their headers, their metadata, their addresses, and pictures out of DICOM files."""
