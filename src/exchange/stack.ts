import type { Handler, Layer } from './exchange.ts'

/** Layers over one handler, outermost first: the way a request travels. A layer standing above the facts it needs does not compile. */
export interface Stack<Outer, Inner> {
  through<Next>(layer: Layer<Inner, Next>): Stack<Outer, Next>
  to(handler: Handler<Inner>): Handler<Outer>
}

export function stack<In>(): Stack<In, In> {
  return growing<In, In>((handler) => handler)
}

function growing<Outer, Inner>(wrap: Layer<Outer, Inner>): Stack<Outer, Inner> {
  return {
    through: (layer) => growing((handler) => wrap(layer(handler))),
    to: (handler) => wrap(handler),
  }
}
