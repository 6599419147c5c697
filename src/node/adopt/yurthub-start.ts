import { posix } from 'node:path'
import { parse } from 'yaml'
import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt } from '../../api/kube/json-at.ts'
import { kubernetesYaml } from '../../api/kube/yaml.ts'
import { messageOf } from '../../config/settings.ts'
import type { NodeFiles } from '../join/node-files.ts'

/** How a node starts its yurthub. */
export interface YurthubStart {
  /** Its flags, with variables replaced. */
  readonly flags: readonly string[]
  /** Variables of its environment, but for those that only name the node. */
  readonly variables: readonly string[]
}

const program = 'yurthub'

/**
 * The start in the manifest of a static pod. `nodeName` takes the place of the name that the
 * kubelet fills in. Throws where it is not understood.
 */
export function startOfPod(text: string, nodeName: string): YurthubStart {
  const pod = podIn(text)
  const all = listAt(pod, 'spec', 'containers').filter((each) => isObject(each))
  const container = all.find((each) =>
    [...textsAt(each, 'command'), ...textsAt(each, 'args')].some(isProgram),
  )
  const own = container ?? all.find((each) => textAt(each, 'image').includes(program))
  if (own === undefined) throw new Error('none of its containers starts yurthub')
  const others = all.filter((each) => each !== own).map((each) => textAt(each, 'name'))
  if (others.length > 0) {
    throw new Error(
      `it has other containers, which would end with it: ${others.join(', ')}: give them a pod of their own first`,
    )
  }
  const environment = environmentOf(own, nodeName)
  const words = [...textsAt(own, 'command'), ...textsAt(own, 'args')]
  return {
    flags: flagsAmong(words).map((word) => expanded(word, environment)),
    variables: [...environment.keys()].filter((name) => name !== 'NODE_NAME'),
  }
}

/**
 * The start of the yurthub that systemd runs, of its process: systemd has read its unit, drop-ins
 * and environment files. Throws where it is not understood.
 */
export function startOfService(files: NodeFiles): YurthubStart {
  const wordsIn = (path: string): readonly string[] => {
    try {
      return files.read(path)?.content.toString().split('\0').slice(0, -1) ?? []
    } catch {
      return [] // it has ended meanwhile
    }
  }
  const isOfUnit = (folder: string): boolean =>
    files.read(`${folder}/cgroup`)?.content.includes('/yurthub.service\n') === true
  const processes = files.names('/proc').filter((name) => /^\d+$/.test(name))
  for (const folder of processes.map((pid) => `/proc/${pid}`)) {
    const [called = '', ...flags] = wordsIn(`${folder}/cmdline`)
    if (!isProgram(called) || !isOfUnit(folder)) continue
    const names = wordsIn(`${folder}/environ`).map((word) => word.split('=', 1)[0] ?? '')
    return { flags, variables: names.filter((name) => proxies.test(name)) }
  }
  throw new Error('its flags are read of its process, and none runs: systemctl start yurthub')
}

/** Variables that change the behaviour of a Go program, whatever its flags are. */
const proxies = /^(?:(?:https?|no)_proxy|GO[A-Z]+)$/i

function podIn(text: string): JsonObject {
  let document: unknown
  try {
    document = parse(text, { ...kubernetesYaml, maxAliasCount: 0 })
  } catch (cause) {
    throw new Error(`it is no YAML: ${messageOf(cause).split('\n')[0]}`, { cause })
  }
  const pod = document as Json
  if (isObject(pod) && pod['kind'] === 'Pod') return pod
  throw new Error('it is no Pod')
}

/** A flag may end in its name, too: `--root-dir=/var/lib/yurthub`. */
const isProgram = (word: string): boolean =>
  !word.startsWith('-') && posix.basename(word) === program

/** The words behind the program; all of them where the image names that. */
function flagsAmong(words: readonly string[]): readonly string[] {
  const at = words.findIndex(isProgram)
  const before = at < 0 ? [] : words.slice(0, at)
  if (before.length > 0 || (at < 0 && words[0]?.startsWith('-') === false)) {
    throw new Error(`yurthub is started by another program, ${words[0]}`)
  }
  return words.slice(at + 1)
}

const textsAt = (value: Json, member: string): readonly string[] =>
  listAt(value, member).filter((each) => typeof each === 'string')

/** `undefined`: a value that only the kubelet knows. */
type Environment = ReadonlyMap<string, string | undefined>

const environmentOf = (container: Json, nodeName: string): Environment =>
  new Map(
    listAt(container, 'env').map((each) => {
      const field = textAt(objectAt(each, 'valueFrom'), 'fieldRef', 'fieldPath')
      const value = isObject(objectAt(each)['valueFrom'] ?? null)
        ? undefined
        : (optionalTextAt(each, 'value') ?? '')
      return [textAt(each, 'name'), field === 'spec.nodeName' ? nodeName : value]
    }),
  )

/** As the kubelet expands it: undefined variables stay as they are written. */
const expanded = (word: string, environment: Environment): string =>
  word.replace(/\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)/g, (written, name: string | undefined) => {
    if (name === undefined) return '$'
    if (!environment.has(name)) return written
    const value = environment.get(name)
    if (value === undefined) {
      throw new Error(
        `${word} has the value of $(${name}), which only the kubelet knows: write it into the manifest`,
      )
    }
    return value
  })
