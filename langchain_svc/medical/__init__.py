"""The medical tools and the patient's record that they send."""
