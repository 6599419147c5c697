import type { InspectionEntry } from './inspection.ts'

/** The sub-commands of `nodehub inspect`, in the order of its help. */
export const inspections: Readonly<Record<string, InspectionEntry>> = {
  status: {
    summary: 'whether the hub is ready and online, its checks and its API servers',
    load: async () => (await import('./status.ts')).status,
  },
  upstreams: {
    summary: 'the health and latency of each API server, and its last failures',
    load: async () => (await import('./lists.ts')).upstreams,
  },
  cache: {
    summary: 'the recorded collections: who read them, how old and how large they are',
    load: async () => (await import('./lists.ts')).cache,
  },
  watches: {
    summary: 'the open watches of each component, and what answers them',
    load: async () => (await import('./lists.ts')).watches,
  },
  requests: {
    summary:
      'the last requests and, with --watch, those to come: by which component, for which resource, and why the hub answered so',
    load: async () => (await import('./requests.ts')).requests,
  },
  pod: {
    summary:
      'one pod as the cloud said last and, as a diff, as each component is shown it, and on which network it is; for root',
    load: async () => (await import('./pod.ts')).pod,
  },
  get: {
    summary:
      'one object as it is stored and, as a diff, as each component is shown it through its filters; for root',
    load: async () => (await import('./get.ts')).get,
  },
  filters: {
    summary: 'the filters, the inputs that they wait for, and their decisions',
    load: async () => (await import('./lists.ts')).filters,
  },
  certificates: {
    summary: 'the certificates that the hub shows and trusts, and when they end',
    load: async () => (await import('./lists.ts')).certificates,
  },
  config: {
    summary: 'every setting, where its value comes from, and what waits for the next start',
    load: async () => (await import('./config.ts')).config,
  },
  bundle: {
    summary:
      'all of these reports, with metrics, log lines, versions and the use of the disk, in an archive for support without secrets',
    load: async () => (await import('./bundle.ts')).bundle(inspections),
  },
  boot: {
    summary:
      'whether the node and each of its pods would come back now without a link, as after a power cut: what is missing from the cache, old or expired, for which pod',
    load: async () => (await import('./boot.ts')).boot,
  },
  'host-network': {
    summary:
      "the pods that the kubelet is shown on the host's network although they do not request it, and which of their ports clash on this node",
    load: async () => (await import('./host-network.ts')).hostNetwork,
  },
}
