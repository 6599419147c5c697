import type { Handler } from './exchange.ts'

/**
 * Layers over one handler, outermost first: the way a request travels. A layer that needs facts which the layers above it do not
 * supply, or that is given replies it cannot turn into its own, does not compile.
 */
export interface Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  through<In, Out>(
    layer: (next: Handler<In, Out>) => Handler<InnerIn, InnerOut>,
  ): Stack<OuterIn, OuterOut, In, Out>
  to(handler: Handler<InnerIn, InnerOut>): Handler<OuterIn, OuterOut>
}

export function stack<In, Out>(): Stack<In, Out, In, Out> {
  return growing<In, Out, In, Out>((handler) => handler)
}

function growing<OuterIn, OuterOut, InnerIn, InnerOut>(
  wrap: (inner: Handler<InnerIn, InnerOut>) => Handler<OuterIn, OuterOut>,
): Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  return {
    through: (layer) => growing((handler) => wrap(layer(handler))),
    to: wrap,
  }
}
