"""For users: a book in memory, an owner that follows a script, and a check of one's own effect."""

from counterfoil.coordinator.clock import SystemClock
from counterfoil.testing.books import VirtualClock, memory_book
from counterfoil.testing.check import check_effect
from counterfoil.testing.http_sandbox import HttpRequest, HttpSandbox
from counterfoil.testing.report import EffectFindings, Finding, Report, Subject
from counterfoil.testing.sandbox import Fault, Request, Sandbox
from counterfoil.testing.scripted import OwnerRefusal, ScriptedOwner, ScriptedSandbox, View

__all__ = [
    "EffectFindings",
    "Fault",
    "Finding",
    "HttpRequest",
    "HttpSandbox",
    "OwnerRefusal",
    "Report",
    "Request",
    "Sandbox",
    "ScriptedOwner",
    "ScriptedSandbox",
    "Subject",
    "SystemClock",
    "View",
    "VirtualClock",
    "check_effect",
    "memory_book",
]
