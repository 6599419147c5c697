import { isIPv6 } from 'node:net'
import { canonical } from '../base/listening-sockets.ts'
import type { Values } from './options.ts'

/** The interface at whose address pods reach the hub. */
export interface DummyInterfaceConfig {
  readonly name: string
  readonly address: string
}

/** `undefined`: none is wanted. As in yurthub, the node's own address decides on the IP family. */
export function dummyInterfaceOf(
  values: Pick<Values, 'enable-dummy-if' | 'dummy-if-name' | 'dummy-if-ip' | 'node-ip'>,
): DummyInterfaceConfig | undefined {
  if (!values['enable-dummy-if']) return undefined
  const usual = isIPv6(values['node-ip'] ?? '') ? 'fd00::2:1' : '169.254.2.1'
  return {
    name: values['dummy-if-name'] ?? 'hub-dummy0',
    address: canonical(values['dummy-if-ip'] ?? usual),
  }
}
