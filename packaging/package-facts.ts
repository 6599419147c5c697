/** What all packages say of themselves. */
export const summary = 'Kubernetes API hub for one node'

export const description: readonly string[] = [
  'The kubelet and other programs of a node use the hub as their API server. Online it is a',
  'transparent proxy; while the link is down it answers from what it has recorded, and pods',
  'start again after a reboot. Node is part of the package. See man nodehub, and /opt/nodehub/docs.',
]

export const maintainer = 'The nodehub authors <nodehub@localhost>'

/** Where and how to build. */
export interface Build {
  /** Where the package goes. */
  readonly out: string
  /** An empty folder. */
  readonly work: string
  readonly compression: 'none' | 'gzip' | 'xz'
}
