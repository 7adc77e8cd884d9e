"""`pagehand setup`: one question at a time, each answer checked at once."""
