"""What a trail says (uncertain-effect/v1). Pure, quick to import, and apart from all that runs."""
