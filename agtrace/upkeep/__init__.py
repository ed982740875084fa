"""What a person does about agtrace itself: setting agents up, forgetting, looking after the index."""
