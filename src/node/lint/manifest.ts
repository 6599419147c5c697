import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  parseDocument,
  visit,
  type Alias,
  type Document,
  type Node,
} from 'yaml'
import { isList, isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { kubernetesYaml } from '../../api/kube/yaml.ts'
import { messageOf } from '../../config/settings.ts'
import type { Path } from './finding.ts'

/** A place in a text, both counted from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** An object as a text holds it. */
export interface ManifestObject {
  readonly object: JsonObject
  /** The position of a member; where it is missing, that of the nearest member around it. */
  readonly at: (path: Path) => Position
}

export interface Manifest {
  readonly objects: readonly ManifestObject[]
  /** Documents that are no objects or cannot be read. */
  readonly mistakes: readonly (Position & { readonly message: string })[]
}

/**
 * The objects of a text as kubectl reads it: documents of YAML, or of JSON one behind the other;
 * the items of lists in them; an environment file of the kubelet as an object of kind
 * `KubeletFlags`.
 */
export function parseManifest(text: string): Manifest {
  const environment = environmentOf(text)
  if (environment !== undefined) return { objects: [environment], mistakes: [] }
  const lines = new LineCounter()
  for (const { index } of text.matchAll(/^/gm)) lines.addNewLine(index)
  const objects: ManifestObject[] = []
  const mistakes: (Position & { message: string })[] = []
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  for (const { document, start } of documentsIn(text)) {
    const [error] = document.errors
    const read = error ? { wrong: error.message, offset: error.pos[0] } : valueOf(document)
    if ('wrong' in read) {
      const message = read.wrong.split('\n')[0]?.split(/ at line \d/)[0] ?? ''
      mistakes.push({ ...positionOf(start + read.offset), message })
    } else if (isObject(read.value)) {
      const at = (path: Path): Position => positionOf(start + offsetAt(document, path))
      objects.push(...itemsOf(read.value, at))
    } else if (read.value !== null) {
      mistakes.push({ ...positionOf(start + startOf(document)), message: 'this is no object' })
    }
  }
  return { objects, mistakes }
}

/** The documents of a text, and where the text of each begins. */
function documentsIn(text: string): { readonly document: Document; readonly start: number }[] {
  const values = jsonValues(text)
  if (values !== undefined)
    return values.map(([start, end]) => ({
      document: parseDocument(text.slice(start, end), kubernetesYaml),
      start,
    }))
  const documents = parseAllDocuments(text, kubernetesYaml)
  return 'empty' in documents ? [] : documents.map((document) => ({ document, start: 0 }))
}

/**
 * Where each value of a text begins and ends that is objects of JSON one behind the other;
 * `undefined` for any other text. One alone is YAML, too.
 */
function jsonValues(text: string): (readonly [start: number, end: number])[] | undefined {
  const values: (readonly [number, number])[] = []
  let depth = 0
  let start = 0
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]|[^\s{}"]+/g)) {
    if (token === '{' && depth++ === 0) start = index
    else if (depth === 0) return undefined
    else if (token === '}' && --depth === 0) values.push([start, index + 1])
  }
  return depth === 0 && values.length > 1 ? values : undefined
}

type ReadDocument = { readonly value: Json } | { readonly wrong: string; readonly offset: number }

/** Aliases are bounded by the parser (100 times), and must not contain themselves. */
function valueOf(document: Document): ReadDocument {
  const key = keyThatIsNoScalar(document)
  if (key) {
    const message = 'a mapping or a list is no key: is this a template that is not rendered?'
    return { wrong: message, offset: key.range?.[0] ?? 0 }
  }
  const endless = aliasOfItself(document)
  if (endless) {
    return { wrong: 'an alias stands for what it is a part of', offset: endless.range?.[0] ?? 0 }
  }
  try {
    return { value: document.toJS() as Json }
  } catch (cause) {
    return { wrong: messageOf(cause), offset: startOf(document) }
  }
}

function keyThatIsNoScalar(document: Document): Node | undefined {
  let found: Node | undefined
  visit(document, {
    Pair(_index, { key }) {
      if (!isCollection(key)) return undefined
      found = key
      return visit.BREAK
    },
  })
  return found
}

function aliasOfItself(document: Document): Alias | undefined {
  let found: Alias | undefined
  visit(document, {
    Alias(_key, alias, around) {
      const names = around.some((node) => isNode(node) && anchorOf(node) === alias.source)
      if (!names || !around.includes(alias.resolve(document) as Node)) return undefined
      found = alias
      return visit.BREAK
    },
  })
  return found
}

const anchorOf = (node: Node): string | undefined => (isAlias(node) ? undefined : node.anchor)

const startOf = (document: Document): number => document.contents?.range?.[0] ?? 0

/** An object, or the items of a list (kubectl get -o yaml prints one). */
function itemsOf(object: JsonObject, at: ManifestObject['at']): ManifestObject[] {
  const items = object['items']
  const kind = object['kind']
  if (!isList(items) || typeof kind !== 'string' || !kind.endsWith('List')) return [{ object, at }]
  return items.flatMap((item, index) =>
    isObject(item) ? itemsOf(withKind(item, object), (path) => at(['items', index, ...path])) : [],
  )
}

/** An API server's list names the kind of its items once, in its own. */
function withKind(item: JsonObject, { kind, apiVersion }: JsonObject): JsonObject {
  if (item['kind'] !== undefined || typeof kind !== 'string' || kind === 'List') return item
  return { kind: kind.replace(/List$/, ''), ...(apiVersion && { apiVersion }), ...item }
}

/**
 * The offset of the last existing node on a path: that of a member's name rather than its value.
 */
function offsetAt(document: Document, path: Path): number {
  let node: unknown = document.contents
  let offset = startOf(document)
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      // Of a key that is given twice, the last counts.
      const pair = node.items.findLast(
        ({ key }) => isScalar(key) && String(key.value) === String(step),
      )
      if (pair === undefined) return offset
      offset = (pair.key as Node).range?.[0] ?? offset
      node = pair.value
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step]
      if (node === undefined) return offset
      offset = (node as Node).range?.[0] ?? offset
    } else return offset
  }
  return offset
}

const assignment = /^(KUBELET_\w*ARGS)=(.*)$/

/**
 * An environment file with the kubelet's arguments (kubeadm-flags.env, /etc/default/kubelet): all
 * lines are assignments.
 */
function environmentOf(text: string): ManifestObject | undefined {
  const variables: Record<string, string[]> = {}
  const lineOf: Record<string, number> = {}
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    if (!/^\w+=/.test(line)) return undefined
    const [, name, value] = assignment.exec(line) ?? []
    if (name === undefined || value === undefined) continue
    variables[name] = value.replaceAll(/["']/g, '').split(/\s+/).filter(Boolean)
    lineOf[name] = index + 1
  }
  if (Object.keys(variables).length === 0) return undefined
  return {
    object: { kind: 'KubeletFlags', variables },
    at: ([, name = '']) => ({ line: lineOf[name] ?? 1, column: 1 }),
  }
}
