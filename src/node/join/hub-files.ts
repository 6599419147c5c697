import { stringify } from 'yaml'
import { hubArgs, staticPod, type StaticPodOptions } from './static-pod.ts'
import { systemdUnits, targetDropIns, unitNames } from './systemd-units.ts'

/** The supervisor of a node's hub: the kubelet, by a static pod in this file, or systemd. */
export type HubRunner = { readonly staticPod: string } | { readonly systemd: true }

/** The Node of a hub that systemd runs; the image of a static pod has its own. */
export interface HubRuntime {
  readonly runtime: string
}

/** A file that makes a node run a hub, owned by root. */
export interface WrittenFile {
  readonly path: string
  readonly mode: number
  readonly content: string
}

const unitFolder = '/etc/systemd/system'

/** The files by which the hub is run, in the order in which they are written. */
export function hubFiles(
  by: HubRunner,
  start: StaticPodOptions & HubRuntime,
): readonly WrittenFile[] {
  if ('staticPod' in by) {
    const content = stringify(staticPod(start), { lineWidth: 0 })
    return [{ path: by.staticPod, mode: 0o600, content }]
  }
  const { ports, nodeName, rootDir, runtime } = start
  const units = systemdUnits({ args: hubArgs(start), rootDir, ports, nodeName, runtime })
  return Object.entries({ ...units, ...targetDropIns }).map(([name, content]) => ({
    path: `${unitFolder}/${name}`,
    mode: 0o644,
    content,
  }))
}

/** The paths of these files. */
export const hubPaths = (by: HubRunner): readonly string[] =>
  'staticPod' in by
    ? [by.staticPod]
    : [...unitNames, ...Object.keys(targetDropIns)].map((name) => `${unitFolder}/${name}`)

/** The file that has the flags of the hub. */
export const flagsPath = (by: HubRunner): string =>
  'staticPod' in by ? by.staticPod : `${unitFolder}/nodehub.service`

/** Where an operator adds settings to that file without changing it; `undefined`: nowhere. */
export const dropInFolder = (by: HubRunner): string | undefined =>
  'staticPod' in by ? undefined : `${flagsPath(by)}.d`
