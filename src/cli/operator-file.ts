import { join, resolve } from 'node:path'
import { processSources } from '../config/process.ts'

/**
 * Where this process finds a file that an operator names. The command of a host runs in a container
 * (src/node/join/host-command.ts), which it gives the root of the host and the folder that it was
 * called in.
 */
export function operatorFile(path: string): string {
  const { NODEHUB_HOST_ROOT: root, NODEHUB_HOST_FOLDER: folder = '/' } = processSources([]).env
  return root === undefined ? path : join(root, resolve(folder, path))
}
