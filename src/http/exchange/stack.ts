import type { Handler } from './exchange.ts'

/**
 * Layers over one handler, outermost first, in the order in which a request passes them. A layer
 * does not compile if the layers above do not supply the facts that it needs, or if it gets replies
 * that it cannot convert to its own.
 */
export interface Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  through<In, Out>(
    layer: (next: Handler<In, Out>) => Handler<InnerIn, InnerOut>,
  ): Stack<OuterIn, OuterOut, In, Out>
  to(handler: Handler<InnerIn, InnerOut>): Handler<OuterIn, OuterOut>
}

/** Handlers reject, and never throw synchronously. */
const rejecting =
  <In, Out>(handler: Handler<In, Out>): Handler<In, Out> =>
  (request) => {
    try {
      return handler(request)
    } catch (cause) {
      return Promise.reject(cause)
    }
  }

/** Converts what each layer and the handler throw into rejections. */
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
