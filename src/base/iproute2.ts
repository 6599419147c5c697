import { execFile, type ExecFileException } from 'node:child_process'
import { isIPv6 } from 'node:net'
import { howFailed } from './failed-program.ts'

/** How long `ip` may take: it only sends messages to the kernel, but a node that boots is busy. */
const longestMs = 15_000

/** Hundreds of interfaces of pods, with all details. */
const mostBytes = 16 * 1024 * 1024

/** A network interface cannot be made or used. The message is the reason, for the operator. */
export class InterfaceFault extends Error {
  readonly code = 'INTERFACE_FAULT'
}

/** A network interface, as `ip` shows it. */
export interface NetworkInterface {
  readonly name: string
  /** `dummy`, `bridge`, `veth`; absent for a device. */
  readonly kind: string | undefined
  /** A note for operators, which the kernel keeps with the interface. */
  readonly alias: string | undefined
  readonly isUp: boolean
  readonly addresses: readonly string[]
}

/** The interfaces of this network namespace. Rejects with `InterfaceFault`. */
export async function networkInterfaces(): Promise<readonly NetworkInterface[]> {
  const text = await ip('-json', '-details', 'address', 'show')
  try {
    return (JSON.parse(text) as readonly ShownInterface[]).map((shown) => ({
      name: shown.ifname,
      kind: shown.linkinfo?.info_kind,
      alias: shown.ifalias,
      isUp: shown.flags?.includes('UP') === true,
      addresses: (shown.addr_info ?? []).flatMap(({ local }) => local ?? []),
    }))
  } catch (cause) {
    throw new InterfaceFault('`ip -json address show` prints no JSON', { cause })
  }
}

/** The members that are used of what `ip -json -details address show` prints. */
interface ShownInterface {
  readonly ifname: string
  readonly ifalias?: string
  readonly flags?: readonly string[]
  readonly linkinfo?: { readonly info_kind?: string }
  readonly addr_info?: readonly { readonly local?: string }[]
}

/**
 * The arguments of `ip` that add the one address. An IPv4 address has the scope `link`, so that the
 * kernel never chooses it as the source of what the node sends elsewhere. An IPv6 address can be
 * used at once, as no other host on a dummy interface can have the same.
 */
export function addressArguments(name: string, address: string): readonly string[] {
  const [bits, ...more] = isIPv6(address) ? ['128', 'nodad'] : ['32', 'scope', 'link']
  return ['address', 'add', `${address}/${bits}`, 'dev', name, ...more]
}

/** What `ip` prints. Rejects with `InterfaceFault`. */
export function ip(...args: readonly string[]): Promise<string> {
  const options = { timeout: longestMs, killSignal: 'SIGKILL', maxBuffer: mostBytes } as const
  return new Promise((resolve, reject) => {
    execFile('ip', args, options, (failure, output, complaint) => {
      if (failure) reject(new InterfaceFault(reasonOf(args, failure, complaint)))
      else resolve(output)
    })
  })
}

function reasonOf(args: readonly string[], failure: ExecFileException, complaint: string): string {
  if (failure.code === 'ENOENT') return 'the program ip (iproute2) is not there'
  const command = `\`${['ip', ...args].join(' ')}\``
  const [line = ''] = complaint.trim().split('\n')
  return line === ''
    ? `${command} ${howFailed(failure, longestMs)}`
    : `${command}: ${line.slice(0, 200)}`
}
