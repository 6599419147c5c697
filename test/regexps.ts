/**
 * A rule of `npm run check` (oxlint loads it as a plugin): an expression takes time in proportion
 * to what it is given. One that tries again from each place of a text that never matches takes the
 * square of its length, and a head of 64 KiB then stops the process for seconds.
 */
import { analyse } from 'scslre'

/** What of a node of the syntax tree is looked at (ESTree). */
interface Node {
  readonly regex?: { readonly pattern: string; readonly flags: string }
  readonly callee?: { readonly name?: string }
}

interface Context {
  report(finding: { readonly node: Node; readonly message: string }): void
}

/** What makes an expression slow on a long text; none if nothing does. */
export const superLinear = (source: string, flags: string): string[] =>
  analyse({ source, flags }).reports.map(
    ({ exponential, character }) =>
      `many of /${character.literal.source}/ take ${exponential ? 'exponential' : 'quadratic'} time`,
  )

function computed(context: Context, node: Node): void {
  if (node.callee?.name !== 'RegExp') return
  context.report({
    node,
    message: 'the time of an expression is checked only if it is written out',
  })
}

const linear = {
  create: (context: Context) => ({
    Literal(node: Node): void {
      const { regex } = node
      if (!regex) return
      for (const message of superLinear(regex.pattern, regex.flags))
        context.report({ node, message: `${message}: look for the place by index` })
    },
    NewExpression: (node: Node): void => computed(context, node),
    CallExpression: (node: Node): void => computed(context, node),
  }),
}

export default { meta: { name: 'regexp' }, rules: { linear } }
