"""`ChatSvc`, by the path where LangChain's users look for it."""

from .chat import ChatSvc as ChatSvc
from .chat import ListedModel as ListedModel
