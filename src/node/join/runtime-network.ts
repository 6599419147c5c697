import type { NodeFiles } from './node-files.ts'

/** The folder from which the container runtime reads its network configuration. */
export interface RuntimeNetwork {
  readonly folder: string
  /** The source of that setting, for a message. */
  readonly saidBy: string
}

const usual = '/etc/cni/net.d'

/** Each with the member that names the folder, in a section that ends so. */
const configurations = [
  { file: '/etc/containerd/config.toml', key: 'conf_dir', section: /\.cni["'\]]*$/ },
  { file: '/etc/crio/crio.conf', key: 'network_dir', section: /\.network["'\]]*$/ },
] as const

/** Reads the runtime's own configuration; else the common default. Imported files are not read. */
export function runtimeNetwork(files: NodeFiles): RuntimeNetwork {
  for (const { file, key, section } of configurations) {
    const content = files.read(file)?.content.toString()
    const folder = content === undefined ? undefined : settingIn(content, key, section)
    if (folder !== undefined) return { folder, saidBy: file }
  }
  return { folder: usual, saidBy: 'default of container runtimes' }
}

/** A string of a TOML file, in the last section whose heading matches. */
function settingIn(content: string, key: string, section: RegExp): string | undefined {
  let inside = false
  let found: string | undefined
  for (const line of content.split('\n').map((each) => each.trim())) {
    if (line.startsWith('[')) inside = section.test(line.split('#')[0]?.trimEnd() ?? '')
    if (!inside || !line.startsWith(key)) continue
    found = /^\w+\s*=\s*["']([^"']+)["']/.exec(line)?.[1] ?? found
  }
  return found
}

/** The files that a runtime reads as network configurations. It uses the first by name. */
export const networksIn = (files: NodeFiles, folder: string): readonly string[] =>
  files.names(folder).filter((name) => /^[^.].*\.(conf|conflist|json)$/.test(name))
