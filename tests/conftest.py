"""What every test shares: slow examples are not failures, and a found counter-example is printed in full."""

from hypothesis import HealthCheck, settings

settings.register_profile("discreet", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("discreet")
