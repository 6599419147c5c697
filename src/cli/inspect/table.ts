import type { Inspection } from './inspection.ts'

interface Entry {
  readonly summary: string
  /** Loaded when it runs, as commands are. */
  readonly load: () => Promise<Inspection<unknown>>
}

/** The sub-commands of `nodehub inspect`, in the order of its help. */
export const inspections: Readonly<Record<string, Entry>> = {
  boot: {
    summary:
      'whether the node and each of its pods would come back now without a link, as after a power cut: what is missing from the cache, old or expired, for which pod',
    load: async () => (await import('./boot.ts')).boot,
  },
  'host-network': {
    summary:
      'on which network the kubelet is shown each pod, what --host-network-propagation=on would make of it, which ports it declares, and which of them clash on this node',
    load: async () => (await import('./host-network.ts')).hostNetwork,
  },
}
