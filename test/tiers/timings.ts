import { floors } from '../floors.ts'
import { table } from '../mutants/table.ts'
import type { Results } from './tap-results.ts'

/** Seconds of a whole run: its wall time, and the processor time of all of its processes. */
export interface RunSeconds {
  readonly seconds: number
  readonly processor: number
}

/**
 * A table of what the files of each folder took, and one of the processes that worked most. The
 * wall times come to more than that of the run, in which several run at a time. The processor time
 * of the run is more than those of the folders: the runner works, too.
 */
export function timingsOf(
  { files, processes }: Results,
  { seconds, processor }: RunSeconds,
): string {
  const byFolder = Map.groupBy(files, ({ path }) => folderOf(path))
  const ofProcesses = Map.groupBy(processes, ({ path }) => folderOf(path))
  const rows = [...byFolder]
    .map(([folder, its]) => ({
      folder,
      count: its.length,
      seconds: sum(its.map(({ ms }) => ms / 1000)),
      processor: sum((ofProcesses.get(folder) ?? []).map((each) => each.seconds)),
    }))
    .toSorted((a, b) => b.processor - a.processor || b.seconds - a.seconds)
    .map((row) => [row.folder, row.count, row.seconds.toFixed(1), row.processor.toFixed(1)])
  const byFolders = table([
    ['seconds by folder', 'files', 'wall', 'processor'],
    ...rows,
    ['the run', files.length, seconds.toFixed(1), processor.toFixed(1)],
  ])
  const most = processes.toSorted((a, b) => b.seconds - a.seconds).slice(0, 20)
  const byProcesses = table([
    ['seconds by process, from its first file on', 'processor'],
    ...most.map((each) => [each.path, each.seconds.toFixed(1)]),
  ])
  return `${byFolders}\n\n${byProcesses}`
}

/** The folder of sources that a test mirrors; else that below `test/`. */
function folderOf(path: string): string {
  const mirrored = floors.flat().find((name) => path.startsWith(`test/${name}/`))
  return `test/${mirrored ?? path.split('/').slice(1, -1)[0] ?? ''}`
}

const sum = (each: readonly number[]): number => each.reduce((all, one) => all + one, 0)
