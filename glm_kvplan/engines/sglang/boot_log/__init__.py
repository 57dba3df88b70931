"""SGLang's boot log read and explained."""
