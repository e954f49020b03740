"""Requests that neither service offers, with remarks that clients show to their users."""

from __future__ import annotations

from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.heartbeats import parse_client_config
from tidemark.remoting.pulling import TAG

from .exchange import Exchange, Handler

NO_SQL = "The broker does not support consumer to filter message by SQL92: subscribe by tags"
_NO_POP = "POP is not supported: use a push, lite pull or pull consumer with client-side balancing"
_NO_REPLY = "request-reply is not supported"
_REMARKS = {
    RequestCode.SEND_REPLY_MESSAGE: _NO_REPLY,
    RequestCode.SEND_REPLY_MESSAGE_V2: _NO_REPLY,
    RequestCode.QUERY_ASSIGNMENT: _NO_POP,
    RequestCode.POP_MESSAGE: _NO_POP,
    RequestCode.ACK_MESSAGE: _NO_POP,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _NO_POP,
    RequestCode.NOTIFICATION: _NO_POP,
}


def refusals() -> dict[int, Handler]:
    """Return the handlers of requests that are refused, by code."""
    handlers: dict[int, Handler] = {
        code: refusing(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark) for code, remark in _REMARKS.items()
    }
    handlers[RequestCode.RECALL_MESSAGE] = refusing(
        ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden: messages cannot be recalled"
    )
    # Clients ignore the outcome of the second half of a transaction, whose first half was refused.
    handlers[RequestCode.END_TRANSACTION] = refusing(ResponseCode.NO_PERMISSION, "transactions are not supported")
    handlers[RequestCode.CHECK_CLIENT_CONFIG] = _check_subscription
    return handlers


def refusing(code: ResponseCode, remark: str) -> Handler:
    """Return a handler that answers with *code* and *remark*."""

    def refuse(exchange: Exchange) -> None:
        exchange.answer(code, remark=remark)

    return refuse


def _check_subscription(exchange: Exchange) -> None:
    """Answer 46: a subscription by tags is possible, one by SQL is not."""
    config = parse_client_config(exchange.frame.body)
    if config.subscription.expression_type == TAG:
        exchange.answer()
    else:
        exchange.answer(ResponseCode.SYSTEM_ERROR, remark=NO_SQL)
