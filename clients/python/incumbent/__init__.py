"""The Python client of ``incumbent serve``: leases and duties, with nothing but the standard library.

    from incumbent import Sidecar

    sidecar = Sidecar("unix:/run/incumbent/incumbent.sock")      # or "http://127.0.0.1:7070"
    with sidecar.hold("scheduler", name="billing-1") as hold:    # waits until this process leads
        while hold.is_held():                                    # a memory read and a clock read
            settle_invoices(fence=hold.term)
"""

from ._duties import Duty, Serving
from ._hold import Hold
from ._http import Problem, Unreachable
from ._sidecar import Sidecar

__all__ = ["Duty", "Hold", "Problem", "Serving", "Sidecar", "Unreachable"]
