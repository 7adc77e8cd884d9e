"""The built-in editor: no network, no model, and only what it surely understands."""
