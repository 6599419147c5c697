/**
 * Where a source file can be made faulty, one small fault at a time, and which of its branches
 * there are.
 */
import { parseSync, visitorKeys } from 'oxc-parser'

/** One small fault: `was`, from `start` on, becomes `becomes`. */
export interface Mutant {
  /** Path, line, column and kind: the same as long as what is above stays the same. */
  readonly id: string
  readonly path: string
  readonly start: number
  readonly was: string
  readonly becomes: string
  /** What has to run for the fault to show. */
  readonly reachedAt: number
}

type Kind =
  | 'negated'
  | 'boundary'
  | 'equality'
  | 'boolean'
  | 'logical'
  | 'arithmetic'
  | 'no-call'
  | 'no-assignment'
  | 'no-guard'
  | 'no-body'
  | 'no-elements'
  | 'no-text'
  | 'no-fallback'
  | 'number'

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

function parse(path: string, source: string): Node {
  const { program, errors } = parseSync(path, source)
  if (errors[0]) throw new Error(`${path} cannot be parsed: ${errors[0].message}`)
  return program as unknown as Node
}

/** What of a TypeScript node runs: of `a as B` it is `a`, of all others nothing. */
const typed = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSInstantiationExpression',
])

function* childrenOf(node: Node): Generator<Node> {
  const keys = typed.has(node.type) ? ['expression'] : (visitorKeys[node.type] ?? [])
  for (const key of keys) {
    if (key === 'source' && /^(?:Import|Export)/.test(node.type)) continue
    if (key === 'key' && node['computed'] !== true) continue
    for (const child of [node[key]].flat()) {
      if (isNode(child) && (!child.type.startsWith('TS') || typed.has(child.type))) yield child
    }
  }
}

const opposite: Readonly<Record<string, readonly [Kind, string]>> = {
  '<': ['boundary', '<='],
  '<=': ['boundary', '<'],
  '>': ['boundary', '>='],
  '>=': ['boundary', '>'],
  '===': ['equality', '!=='],
  '!==': ['equality', '==='],
  '+': ['arithmetic', '-'],
  '-': ['arithmetic', '+'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '%': ['arithmetic', '*'],
  '&': ['arithmetic', '|'],
  '|': ['arithmetic', '&'],
  '<<': ['arithmetic', '>>>'],
  '>>': ['arithmetic', '<<'],
  '>>>': ['arithmetic', '<<'],
  '&&': ['logical', '||'],
  '||': ['logical', '&&'],
  '+=': ['arithmetic', '-='],
  '-=': ['arithmetic', '+='],
  '++': ['arithmetic', '--'],
  '--': ['arithmetic', '++'],
}

/**
 * What is written for people: the log, and texts with blanks in them. A fault there is no fault of
 * behaviour.
 */
const logs = /^(?:await )?(?:[\w.#]*\.)?log\.(?:debug|info|warn|error)\(/

/**
 * Every fault of a source file, in its order. Types, import specifiers, the log and prose are left
 * alone.
 */
export function mutantsOf(path: string, source: string): Mutant[] {
  const found: Mutant[] = []
  const lines = new Lines(source)
  const text = ({ start, end }: Node): string => source.slice(start, end)

  /** `at` is where a reader finds it, `reachedAt` what has to run for it to show. */
  const add = (kind: Kind, node: Node, becomes: string, at = node.start, reachedAt = at): void => {
    const { start, end } = node
    const { line, column } = lines.at(at)
    const was = source.slice(start, end)
    const id = `${path}:${line}:${column}:${kind}`
    found.push({ id, path, start, was, becomes, reachedAt })
  }

  const visit = (node: Node, parent: Node): void => {
    switch (node.type) {
      case 'IfStatement':
      case 'ConditionalExpression':
      case 'WhileStatement': {
        const test = node['test'] as Node
        const at = node.type === 'ConditionalExpression' ? test.end : test.start
        add('negated', test, `!(${text(test)})`, at, test.start)
        if (node.type === 'IfStatement' && leaves(node['consequent'] as Node) && !node['alternate'])
          add('no-guard', test, `false && (${text(test)})`)
        break
      }
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const [left, right] = [node['left'] as Node, node['right'] as Node]
        const operator = String(node['operator'])
        const between = source.slice(left.end, right.start)
        const at = left.end + between.indexOf(operator)
        if (operator === '??') add('no-fallback', node, `(${text(left)})`, at, right.start)
        const [kind, other] = opposite[operator] ?? []
        // The whole test of an `if` is already negated.
        if (kind === 'equality' && parent['test'] === node) break
        if (operator === '+' && (isText(left) || isText(right))) break
        if (kind !== undefined)
          add(kind, node, `(${text(left)}) ${other} (${text(right)})`, at, node.start)
        break
      }
      case 'AssignmentExpression':
      case 'UpdateExpression': {
        const operator = String(node['operator'])
        const [kind, other] = opposite[operator] ?? []
        const ofText = operator === '+=' && isText(node['right'] as Node)
        if (kind !== undefined && !ofText) {
          const [side, right] = [node['left'] ?? node['argument'], node['right']] as Node[]
          const name = text(side as Node)
          if (right !== undefined) add(kind, node, `${name} ${other} ${text(right)}`)
          else add(kind, node, node['prefix'] === true ? `${other}${name}` : `${name}${other}`)
        }
        break
      }
      case 'ExpressionStatement': {
        let expression = node['expression'] as Node
        while (expression.type === 'AwaitExpression' || expression.type === 'UnaryExpression')
          expression = expression['argument'] as Node
        if (logs.test(text(node))) return
        const callee = expression['callee'] as Node | undefined
        if (expression.type === 'CallExpression' && callee?.type !== 'Super')
          add('no-call', node, ';')
        if (expression.type === 'AssignmentExpression') add('no-assignment', node, ';')
        break
      }
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'ArrowFunctionExpression': {
        const body = node['body'] as Node
        const statements = body?.['body']
        if (body?.type === 'BlockStatement' && Array.isArray(statements) && statements.length > 0)
          if (parent['kind'] !== 'constructor')
            add('no-body', body, '{}', body.start, body.start + 1)
        break
      }
      case 'ArrayExpression':
        if ((node['elements'] as Node[]).length > 0) add('no-elements', node, '[]')
        break
      case 'TemplateLiteral':
        if (parent.type !== 'TaggedTemplateExpression' && !/\s/.test(text(node)))
          add('no-text', node, "''")
        break
      case 'NewExpression':
        // The message of an error is for people.
        if (text(node['callee'] as Node).endsWith('Error')) return
        break
      case 'Literal': {
        const value = node['value']
        if (typeof value === 'boolean') add('boolean', node, String(!value))
        if (typeof value === 'string' && value !== '' && !/\s/.test(value))
          if (parent['directive'] === undefined) add('no-text', node, "''")
        if (typeof value === 'number')
          add('number', node, String(value < 10 ? value + 1 : value * 2))
        if (typeof value === 'bigint') add('number', node, `${value + 1n}n`)
        break
      }
    }
    for (const child of childrenOf(node)) visit(child, node)
  }
  const program = parse(path, source)
  visit(program, program)
  return found
}

/** Whether a statement does nothing but leave: such an `if` is a guard. */
function leaves(statement: Node): boolean {
  const block = statement.type === 'BlockStatement' ? (statement['body'] as Node[]) : [statement]
  return /^(?:Return|Throw|Continue|Break)Statement$/.test(block.at(-1)?.type ?? '')
}

const isText = ({ type, value }: Node): boolean =>
  type === 'TemplateLiteral' || (type === 'Literal' && typeof value === 'string')

/**
 * Where each branch of a source file begins: the arms of conditions, the right sides of `&&`, `||`
 * and `??`, cases, catches, and the bodies of loops. An `else` that is not written is none.
 */
export function branchesOf(path: string, source: string): number[] {
  const found: number[] = []
  const add = (node: unknown): void => {
    // The brace of a block belongs to what is around it.
    if (isNode(node)) found.push(node.type === 'BlockStatement' ? node.start + 1 : node.start)
  }
  const visit = (node: Node): void => {
    if (/^(?:If|Conditional)/.test(node.type)) {
      add(node['consequent'])
      add(node['alternate'])
    } else if (node.type === 'LogicalExpression') add(node['right'])
    else if (node.type === 'SwitchCase') add((node['consequent'] as Node[])[0])
    else if (/^(?:For|While|DoWhile|Catch)/.test(node.type)) add(node['body'])
    for (const child of childrenOf(node)) visit(child)
  }
  visit(parse(path, source))
  return found
}

class Lines {
  readonly #starts: number[] = [0]

  constructor(source: string) {
    for (const { index } of source.matchAll(/\n/g)) this.#starts.push(index + 1)
  }

  /** Both count from 1. */
  at(offset: number): { line: number; column: number } {
    const line = this.#starts.findLastIndex((start) => start <= offset)
    return { line: line + 1, column: offset - (this.#starts[line] ?? 0) + 1 }
  }
}
