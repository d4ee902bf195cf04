"""How fast jobs run: rates, sensitivities, goodput."""
