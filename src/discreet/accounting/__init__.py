"""From events to certified guarantees."""
