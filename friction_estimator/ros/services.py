"""Services of the estimator node: ``~/reset``; where friction is estimated ``~/freeze``, ``~/save_parameters``, too."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from friction_estimator.errors import ConfigError
from friction_estimator.estimation.estimator import Estimator
from friction_estimator.io.parameters import save_parameters


def serve(node: Node, estimator: Estimator, parameters_file: str, after_reset: Callable[[], None]) -> None:
    """Offer the services.

    Parameters
    ----------
    node : owner of the services
    estimator : what they act on
    parameters_file : where identified parameters are saved; empty: nowhere
    after_reset : called when the filters have been restarted
    """

    def reset(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        estimator.reset()
        after_reset()
        return _answer(response, True, "filters restarted; identified parameters kept")

    def freeze(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        estimator.frozen = request.data
        return _answer(response, True, "identification is frozen" if request.data else "identification continues")

    def save(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not parameters_file:
            return _answer(response, False, "the parameter 'parameters_file' names no file")
        try:
            save_parameters(parameters_file, estimator.identified)
        except ConfigError as error:
            return _answer(response, False, str(error))
        return _answer(response, True, f"written to {parameters_file}")

    node.create_service(Trigger, "~/reset", reset)
    if estimator.config.has_friction:
        node.create_service(SetBool, "~/freeze", freeze)
        node.create_service(Trigger, "~/save_parameters", save)


def _answer(
    response: Trigger.Response | SetBool.Response, success: bool, message: str
) -> Trigger.Response | SetBool.Response:
    response.success, response.message = success, message
    return response
