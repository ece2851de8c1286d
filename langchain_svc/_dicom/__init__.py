"""The pixels of a DICOM file: needs the extra `dicom`, and is imported when first asked for."""
