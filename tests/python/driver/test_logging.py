"""Loggers: what is logged, when, and where from."""

import functools
import logging

import pytest
import torch

from eager_comparison import outcome, program

X = torch.ones(2)


class Collects(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records, self.raises = [], False

    def emit(self, record):
        self.records.append((record.levelname, record.getMessage(), record.funcName))
        if self.raises:
            raise ValueError("full")


def new_logger(kind=logging.Logger, level=logging.INFO):
    logger, handler = kind("name", level), Collects()
    logger.addHandler(handler)
    return logger, handler


LOGS = {
    "constant": lambda logger, x, items: logger.info("here"),
    "tensor": lambda logger, x, items: logger.info("%s", x),
    "list": lambda logger, x, items: logger.warning("%s %d", items, 3),
    "not enabled": lambda logger, x, items: logger.debug("%s", items),
    "level": lambda logger, x, items: logger.log(logging.ERROR, "%s", "text"),
    "level that is not enabled": lambda logger, x, items: logger.log(5, "%s", "text"),
    "error": lambda logger, x, items: logger.error("error", exc_info=False),
}


@pytest.mark.parametrize("kind", LOGS)
@program()
def test_records(compile, kind):
    def log(logger, x, items):
        y = x + 1
        items.append(1)
        given = LOGS[kind](logger, y, items)
        items.append(2)
        y.add_(1)
        return y * 2, given, list(items)

    logger, handler = new_logger()
    f = compile(log)
    results = [f(logger, X, []) for _ in range(3)]
    logger.setLevel(logging.CRITICAL)
    results += [f(logger, X, []) for _ in range(2)]
    logger.setLevel(1)
    results += [f(logger, X, []) for _ in range(2)]
    logger.disabled = True
    return results + [f(logger, X, []), handler.records]


@program(whole=True)
def test_what_is_not_enabled_is_captured(compile):
    logger, handler = new_logger()

    def f(x):
        logger.debug("%s", x)
        return x + 1

    g = compile(f)
    return g(X), g(X), handler.records


@program()
def test_handlers_that_raise_or_are_read(compile):
    logger, handler = new_logger()

    @compile
    def f(x):
        before = len(handler.records)
        try:
            logger.info("one")
        except ValueError as error:
            return str(error), before, len(handler.records)
        return x + len(handler.records), before

    results = [f(X), f(X)]
    handler.raises = True
    return results + [f(X), f(X), handler.records]


@program()
def test_methods_that_only_look_like_a_logger_s(compile):
    class Returns(logging.Logger):
        def info(self, x, scale=2):
            return x * scale

    def info(logger, x):
        return x + logger.level

    logger, _ = new_logger(Returns)

    @functools.lru_cache
    def warning(logger, number):
        return number + 1

    f = compile(lambda x: (logger.info(x), info(logger, x), warning(logger, 3)))
    return f(X), f(X)


@program()
def test_a_record_that_is_logged_once(compile):
    logger, handler = new_logger()

    @functools.lru_cache(None)
    def warn_once(logger, text):
        logger.warning(text)

    @compile
    def f(x):
        warn_once(logger, "once")
        return x + 1

    return outcome(f, X), outcome(f, X), [record[:2] for record in handler.records]
