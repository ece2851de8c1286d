"""FHIR R4 bundles as patients for the medical tools: pure, and imported when first asked for."""
