import { hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { endedFlags } from '../lint/rules/node-files.ts'

/** The values of the flags that lead the kubelet to the hub. */
export interface FlagsOfHub {
  readonly nodePool: string
  readonly hostNetwork: boolean
  /** Leads to the hub. */
  readonly kubeconfig: string
}

/** Flags that left the kubelet in 1.24: with any of them it does not start. */
const ended = new Set([...endedFlags.keys()].filter((name) => endedFlags.get(name) === '1.24'))

/** The flags that were removed or replaced, to restore them in a file that was edited since. */
export interface RemovedFlags {
  /** Flags that the kubelet no longer has, as they were written. */
  readonly ended: readonly string[]
  /** The flags for other kubeconfigs, as they were written. */
  readonly replaced: readonly string[]
}

export class UnreadableFlags extends Error {
  readonly code = 'UNREADABLE_FLAGS'
}

const variable = 'KUBELET_KUBEADM_ARGS'

/** systemd takes blanks on either side of the name (systemd src/basic/env-file.c). */
const assignment = /^[ \t]*KUBELET_KUBEADM_ARGS[ \t]*=/

/** A flag as one word, `--name=value`, even where it was written in two. */
type Flag = string

const nameOf = (flag: Flag): string => /^-{1,2}([^=]*)/.exec(flag)?.[1] ?? ''
const valueOf = (flag: Flag): string =>
  flag.includes('=') ? flag.slice(flag.indexOf('=') + 1) : ''

/**
 * The environment file of the kubelet (kubeadm's kubeadm-flags.env; '' for none) with the wanted
 * flags in it. Given its own result it changes nothing. Throws `UnreadableFlags` where the variable
 * is written in a way that systemd and this disagree on.
 */
export function withFlags(
  content: string,
  { nodePool, hostNetwork, kubeconfig }: FlagsOfHub,
): { readonly content: string; readonly taken: RemovedFlags } {
  const { flags, render } = parsed(content)
  const isEnded = (flag: Flag): boolean => ended.has(nameOf(flag))
  const replaces = (flag: Flag): boolean =>
    (nameOf(flag) === 'kubeconfig' && valueOf(flag) !== kubeconfig) ||
    (nameOf(flag) === 'bootstrap-kubeconfig' && valueOf(flag) !== '')
  const kept = flags.filter(
    (flag) => !isEnded(flag) && !['kubeconfig', 'bootstrap-kubeconfig'].includes(nameOf(flag)),
  )
  const labels = [
    `${nodePoolLabel}=${nodePool}`,
    ...(hostNetwork ? [`${hostNetworkLabel}=true`] : []),
  ]
  return {
    content: render([
      ...withLabels(kept, labels),
      `--kubeconfig=${kubeconfig}`,
      // kubeadm's unit sets this flag: with it a kubelet whose certificate has expired offline
      // would not start.
      '--bootstrap-kubeconfig=',
    ]),
    taken: { ended: flags.filter(isEnded), replaced: flags.filter(replaces) },
  }
}

/**
 * The file without the flags that `withFlags` added, and with those that it removed: for a file
 * that was edited since.
 */
export function withoutFlags(content: string, kubeconfig: string, taken: RemovedFlags): string {
  const { flags, render } = parsed(content)
  const isOurs = (flag: Flag): boolean =>
    flag === `--kubeconfig=${kubeconfig}` || flag === '--bootstrap-kubeconfig='
  const rest = withLabels(
    flags.filter((flag) => !isOurs(flag)),
    [],
  )
  const back = [...taken.ended, ...taken.replaced].filter(
    (flag) => !rest.some((other) => nameOf(other) === nameOf(flag)),
  )
  return render([...rest, ...back])
}

/**
 * The flags with these labels of ours and no others of ours, in the last flag for labels; without
 * one where none are left.
 */
function withLabels(flags: readonly Flag[], labels: readonly string[]): Flag[] {
  const own = new Set([nodePoolLabel, hostNetworkLabel])
  const cleared = flags.flatMap((flag) => {
    if (nameOf(flag) !== 'node-labels') return [flag]
    const others = valueOf(flag)
      .split(',')
      .filter((pair) => pair !== '' && !own.has(pair.split('=')[0] ?? ''))
    return others.length > 0 ? [`--node-labels=${others.join(',')}`] : []
  })
  if (labels.length === 0) return cleared
  const last = cleared.findLastIndex((flag) => nameOf(flag) === 'node-labels')
  if (last < 0) return [...cleared, `--node-labels=${labels.join(',')}`]
  return cleared.with(last, `${cleared[last]},${labels.join(',')}`)
}

interface ParsedFlags {
  readonly flags: readonly Flag[]
  /** The whole file with these flags; no line of it but the variable's changes. */
  readonly render: (flags: readonly Flag[]) => string
}

function parsed(content: string): ParsedFlags {
  const lines = content === '' ? [] : content.split('\n')
  const at = lines.findLastIndex((line) => assignment.test(line))
  const line = lines[at]
  if (line === undefined) {
    return {
      flags: [],
      render: (flags) => {
        const own = `${variable}="${flags.join(' ')}"`
        if (flags.length === 0) return content
        return content === '' || content.endsWith('\n')
          ? `${content}${own}\n`
          : `${content}\n${own}\n`
      },
    }
  }
  const value = line.slice(line.indexOf('=') + 1).trim()
  const [, quote = '', text] = /^(["']?)([^"'\\$`]*)\1$/.exec(value) ?? []
  if (text === undefined) {
    throw new UnreadableFlags(
      `${variable} has quotes, backslashes or variables in it, which are not understood here`,
    )
  }
  return {
    flags: joined(text.split(/\s+/).filter(Boolean)),
    render: (flags) =>
      lines.with(at, `${variable}=${quote || '"'}${flags.join(' ')}${quote || '"'}`).join('\n'),
  }
}

/** Flags in two words, made one: of the kubelet's, all that matter here take a value. */
function joined(words: readonly string[]): Flag[] {
  const flags: string[] = []
  const takesValue = new Set([...ended, 'kubeconfig', 'bootstrap-kubeconfig', 'node-labels'])
  for (const word of words) {
    const last = flags.at(-1)
    const waits = last !== undefined && !last.includes('=') && takesValue.has(nameOf(last))
    if (waits && last.startsWith('-') && !word.startsWith('-'))
      flags[flags.length - 1] = `${last}=${word}`
    else flags.push(word)
  }
  return flags
}
