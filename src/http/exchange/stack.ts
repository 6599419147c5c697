import type { Handler } from './exchange.ts'

/**
 * Layers over one handler, outermost first: the way a request travels. A layer that needs facts
 * which the layers above it do not supply, or that is given replies it cannot turn into its own,
 * does not compile.
 */
export interface Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  through<In, Out>(
    layer: (next: Handler<In, Out>) => Handler<InnerIn, InnerOut>,
  ): Stack<OuterIn, OuterOut, In, Out>
  to(handler: Handler<InnerIn, InnerOut>): Handler<OuterIn, OuterOut>
}

/**
 * The rule that all handlers keep: what fails is a rejected promise, never thrown where the handler
 * is called.
 */
const rejecting =
  <In, Out>(handler: Handler<In, Out>): Handler<In, Out> =>
  (request) => {
    try {
      return handler(request)
    } catch (cause) {
      return Promise.reject(cause)
    }
  }

/**
 * Each layer, and the handler at the end, rejects where it throws: layers above need not tell the
 * two apart.
 */
export function stack<In, Out>(): Stack<In, Out, In, Out> {
  return stackOver<In, Out, In, Out>((handler) => handler)
}

function stackOver<OuterIn, OuterOut, InnerIn, InnerOut>(
  wrap: (inner: Handler<InnerIn, InnerOut>) => Handler<OuterIn, OuterOut>,
): Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  return {
    through: (layer) => stackOver((handler) => wrap(rejecting(layer(handler)))),
    to: (handler) => wrap(rejecting(handler)),
  }
}
