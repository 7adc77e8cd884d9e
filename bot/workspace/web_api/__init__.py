"""The Web API: the methods, and who may call them how often."""
