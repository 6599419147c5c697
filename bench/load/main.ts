// A process that makes load and nothing else: told over the channel to its parent what to do, it
// answers with what it saw.
import { type JobMessage, jobs, type ResultMessage } from './jobs.ts'

process.on('message', ({ name, job }: JobMessage) => {
  const run = jobs[name] as (job: unknown) => Promise<unknown>
  run(job).then(
    (result) => tell({ result }),
    (error: Error) => tell({ failure: `${name}: ${error.message}` }),
  )
})
process.on('disconnect', () => process.exit(0))

function tell(message: ResultMessage): void {
  process.send?.(message)
}
