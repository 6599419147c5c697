// Runs test files, several at a time, and prints TAP. Each is a program of its own that Node runs
// as it is, or one of those that share a process (several.ts). `tap` would have every Node that a
// test starts load hooks that note what it imports, for coverage that is not asked for: a third of
// the processor time of a file.
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { waitedForSeconds } from '../../bench/measure/process-usage.ts'
import { processorComment } from './tap-results.ts'

/** Each of the last is a file, or files with commas between them that share a process. */
const [jobs, ...groups] = process.argv.slice(2)

/** Of a process, so that one that hangs ends the run: no figure of how long a test may take. */
const seconds = 300

/**
 * What a test file's Node is started with. Most files are over before V8 has found out how much
 * memory they take: with room from the start, young objects are collected a tenth as often, and old
 * ones hardly ever. And the threads that collect beside the main one take more of the processor
 * than they save it, where other files want all processors: 8 % of what hubs in tests take.
 */
const options = [
  '--min-semi-space-size=16',
  '--initial-old-space-size=200',
  '--single-threaded-gc',
  ...['http-alone', 'without-hooks', 'resolved', 'threads'].map(
    (name) => `--import=${new URL(`./${name}.ts`, import.meta.url).href}`,
  ),
]

const several = fileURLToPath(new URL('./several.ts', import.meta.url))

/**
 * What a process and the children that it has waited for have taken of the processor is known when
 * it is waited for itself. Of two that end at the same moment the first one is given both.
 */
let known = waitedForSeconds()
t.on('spawn', (test) =>
  test.on('process', (child) =>
    child.once('exit', () => {
      const seconds = waitedForSeconds()
      t.comment(processorComment(test.name, seconds - known))
      known = seconds
    }),
  ),
)

t.jobs = Number(jobs)
t.setTimeout(0)
for (const group of groups) {
  const files = group.split(',')
  const program = files.length > 1 ? [several, ...files] : files
  // env: tap's own spawn adds those hooks to NODE_OPTIONS, whatever environment it is given.
  void t.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, ...options, ...program], {
    name: files.length > 1 ? `${files.length} files from ${files[0]} on` : group,
    buffered: true,
    timeout: seconds * 1000,
    env: { ...process.env, TAP_TIMEOUT: `${seconds}` },
  })
}
