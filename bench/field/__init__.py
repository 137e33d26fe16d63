"""What other people's libraries leave behind, measured by the harness that measures ours."""
