"""The health of many sessions (`agtrace report`): their selection, figures over them, and changes."""
