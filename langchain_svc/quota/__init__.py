"""The limits of a key and the budgets of a job, kept before anything is sent."""
