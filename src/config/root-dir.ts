import { join } from 'node:path'

/** Where keys and state are, unless configured otherwise. */
export const defaultRootDir = '/var/lib/nodehub'

/** The files of what the hub has obtained from the cluster, in the folder of `--root-dir`. */
export const obtainedFiles = (rootDir: string) => ({
  folder: join(rootDir, 'pki'),
  /** The name of the pair, of which a link leads to the present one. */
  name: 'nodehub-client',
  pair: join(rootDir, 'pki', 'nodehub-client-current.pem'),
  ca: join(rootDir, 'pki', 'cluster-ca.crt'),
  /** The bootstrap token that was handed over last while the hub ran. */
  token: join(rootDir, 'pki', 'join-token'),
})

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The root directory, before the modules that read a configuration are loaded. `undefined` where
 * only a configuration file could name it.
 */
export function rootDirAhead(
  argv: readonly string[],
  env: Environment = process.env,
): string | undefined {
  const named = valueAhead('root-dir', argv) ?? env['NODEHUB_ROOT_DIR']
  if (named) return named
  const file = valueAhead('config', argv) ?? env['NODEHUB_CONFIG']
  return file ? undefined : defaultRootDir
}

/** The value of the last flag of this name. */
function valueAhead(name: string, argv: readonly string[]): string | undefined {
  const words = argv.map((word) => /^--?([^=]*)(?:=([\s\S]*))?$/.exec(word))
  const at = words.findLastIndex((word) => word?.[1]?.replaceAll('_', '-') === name)
  return at < 0 ? undefined : (words[at]?.[2] ?? argv[at + 1])
}
