/**
 * Shell for the scripts of packages. Under dpkg's --force-script-chrootless `DPKG_ROOT` is the root
 * of the node; elsewhere it is empty.
 */
import { dirname } from 'node:path'
import { defaultRootDir } from '../src/config/root-dir.ts'
import { format } from '../src/hub/store/log/segments.ts'
import { packagedRuntime } from '../src/node/join/runnable.ts'
import { unitNames } from '../src/node/join/systemd-units.ts'
import { configFile } from './payload.ts'

const units = unitNames.join(' ')

/** The records by which the kubelet was led to the hub, and the commands that undo it. */
const records = {
  joined: 'nodehub leave --restart',
  adopted: 'nodehub adopt --rollback',
}

/** Ends a script, and with it the removal, while the node's kubelet needs the hub. */
export const refuseWhileInUse = Object.entries(records)
  .map(
    ([folder, wayBack]) => `if [ -e "\${DPKG_ROOT:-}${defaultRootDir}/${folder}/record.json" ]; then
  echo "nodehub: the kubelet of this node goes through the hub: ${wayBack}, then remove the package" >&2
  exit 1
fi
`,
  )
  .join('')

const isSystemd = '[ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]'

/** Each file of a cache begins with its format, in the clear. */
const readFormat = `const { openSync, readSync } = require('node:fs')
try {
  const head = Buffer.alloc(300)
  readSync(openSync(process.argv[1]), head)
  console.log(/.kind.:.segment.,.format.:([0-9]+),/.exec(head.toString('latin1'))?.[1] ?? 0)
} catch {
  console.log(0)
}`

/**
 * Ends the installation of `version` before it changes a file, where its hub would refuse the cache
 * that a later release has written: systemd would start it for ever, and hold the sockets on which
 * the kubelet waits. It is the Node of the later release that reads the cache.
 */
export const refuseLaterCache = (
  version: string,
): string => `caches="\${DPKG_ROOT:-}${defaultRootDir}/cache"
if ${isSystemd}; then
  # Wherever the settings of the running hub have it.
  for open in "/proc/$(systemctl show --property=MainPID --value nodehub.service)"/fd/*; do
    open=$(readlink "$open") || continue
    case $open in */lock.db) caches="$caches \${open%/*}" ;; esac
  done
fi
# The operator's settings for other programs of Node.
unset NODE_OPTIONS NODE_COMPILE_CACHE
for cache in $caches; do
  for log in "$cache"/*.log; do
    [ -e "$log" ] && [ -x "\${DPKG_ROOT:-}${packagedRuntime}" ] || continue
    written=$("\${DPKG_ROOT:-}${packagedRuntime}" --no-warnings -e "${readFormat}" "$log") || continue
    [ "\${written:-0}" -gt ${format} ] || continue
    echo "nodehub: $log has the format $written, and nodehub ${version} reads formats up to ${format}: its hub would not start, so nothing is changed" >&2
    echo "nodehub: to go back all the same, with an empty cache: systemctl stop ${units}; move $cache/*.log away; install; systemctl start ${units} (docs/upgrade.md)" >&2
    exit 1
  done
done
`

/** Stops the hub, closes its sockets and takes it out of the boot. */
export const stopHub = `if ${isSystemd}; then
  systemctl disable --now ${units} || :
fi
`

/** The sockets stay open meanwhile: connections wait for the new version. */
export const restartHub = `if ${isSystemd}; then
  systemctl daemon-reload || :
  systemctl try-restart nodehub.service || :
fi
`

export const forgetUnits = `if ${isSystemd}; then
  systemctl daemon-reload || :
fi
`

/** What the hub has written, and the operator. */
export const purge = `rm -rf "\${DPKG_ROOT:-}${defaultRootDir}" "\${DPKG_ROOT:-}${dirname(configFile)}"
`

/** For packagers that know no purge. */
export const sayWhatStays = `echo "nodehub: the keys and the cache of the hub stay in ${defaultRootDir}, the settings in ${dirname(configFile)}: remove both if this node needs no hub again" >&2
`

export const script = (...parts: readonly string[]): string =>
  `#!/bin/sh\nset -e\n${parts.join('')}`

/** A part that only runs if the first argument of the script is one of these words. */
export const onWord = (words: readonly string[], part: string): string =>
  `case "$1" in ${words.join('|')})\n${part};; esac\n`
