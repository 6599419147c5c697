import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  forgetUnits,
  purge,
  refuseLaterCache,
  refuseWhileInUse,
  restartHub,
  sayWhatStays,
  stopHub,
} from './maintainer-scripts.ts'
import type { Build } from './package-facts.ts'
import { configFile, copyPayload, programFolder, type Payload } from './payload.ts'

const compressors = { none: '', gzip: 'z', xz: 'J' } as const
const endings = { none: 'tar', gzip: 'tar.gz', xz: 'tar.xz' } as const

/** kubectl's plugin in the unpacked tarball, which krew links to and does not install. */
export const tarballPlugin = 'kubectl-nodehub'

/** Builds `nodehub-VERSION-linux-ARCHITECTURE.tar…`, with a script that installs it. */
export function buildTarball(payload: Payload, { out, work, compression }: Build): string {
  const name = `nodehub-${payload.version}-linux-${payload.architecture.debian}`
  const folder = join(work, 'tar', name)
  copyPayload(payload, join(folder, 'files'))
  const script = setupScript(payload)
  const installed = join(folder, 'files', programFolder, 'setup.sh')
  mkdirSync(folder, { recursive: true })
  for (const path of [join(folder, 'setup.sh'), installed])
    writeFileSync(path, script, { mode: 0o755 })
  writeFileSync(join(folder, tarballPlugin), pluginScript, { mode: 0o755 })
  const file = join(out, `${name}.${endings[compression]}`)
  execFileSync('tar', [
    `-c${compressors[compression]}f`,
    file,
    '--sort=name',
    '--owner=root:0',
    '--group=root:0',
    '-C',
    join(work, 'tar'),
    name,
  ])
  return file
}

const pluginScript = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")/files${programFolder}
exec "$here/bin/node" --disable-sigusr1 "$here/dist/src/main.js" kubectl "$@"
`

/** POSIX sh, with tools of coreutils or busybox alone. */
const setupScript = ({ files, version }: Payload): string => `#!/bin/sh
# Installs nodehub on a node that no package registry reaches, or removes it. Node is inside.
set -eu
usage() { echo "usage: setup.sh install|remove|purge [ROOT]" >&2; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
DPKG_ROOT=\${2:-}
DPKG_ROOT=\${DPKG_ROOT%/}
files="${files.filter((path) => path !== configFile).join(' ')}"

install_files() {
  rm -rf "$DPKG_ROOT${programFolder}.new"
  mkdir -p "$DPKG_ROOT${programFolder}.new"
  cp -R "$here/files${programFolder}/." "$DPKG_ROOT${programFolder}.new/"
  chown -R 0:0 "$DPKG_ROOT${programFolder}.new"
  for file in $files; do
    mkdir -p "$DPKG_ROOT$(dirname "$file")"
    cp "$here/files$file" "$DPKG_ROOT$file.new"
    chown 0:0 "$DPKG_ROOT$file.new"
    mv "$DPKG_ROOT$file.new" "$DPKG_ROOT$file"
  done
  # An upgrade keeps the settings.
  if [ ! -e "$DPKG_ROOT${configFile}" ]; then
    mkdir -p "$DPKG_ROOT$(dirname ${configFile})"
    (umask 077; cp "$here/files${configFile}" "$DPKG_ROOT${configFile}")
    chown 0:0 "$DPKG_ROOT${configFile}"
  fi
  rm -rf "$DPKG_ROOT${programFolder}.old"
  if [ -e "$DPKG_ROOT${programFolder}" ]; then mv "$DPKG_ROOT${programFolder}" "$DPKG_ROOT${programFolder}.old"; fi
  mv "$DPKG_ROOT${programFolder}.new" "$DPKG_ROOT${programFolder}"
  rm -rf "$DPKG_ROOT${programFolder}.old"
}

case "$1" in
install)
${refuseLaterCache(version)}  install_files
${restartHub}  ;;
remove|purge)
${refuseWhileInUse}${stopHub}  for file in $files; do rm -f "$DPKG_ROOT$file"; done
  rmdir "$DPKG_ROOT/usr/share/doc/nodehub" 2>/dev/null || :
  rm -rf "$DPKG_ROOT${programFolder}"
${forgetUnits}  if [ "$1" = purge ]; then
${purge}  else
    ${sayWhatStays}  fi
  ;;
*) usage ;;
esac
`
