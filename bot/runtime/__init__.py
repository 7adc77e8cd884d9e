"""The foundation that all of Pagehand's programs share."""
