"""torch's side of the library call: its operators, and their gradients."""
