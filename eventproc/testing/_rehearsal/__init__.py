"""Rehearse a user's handler: drawn faults on virtual time, judged by what the user promises."""
