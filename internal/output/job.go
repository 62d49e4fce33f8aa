package output

// Job is a [Destination] with a function that is called when all input has been read, before
// anything of a file becomes visible, and whose error is the job's; it may be nil. The command
// hands it through the doors of packages that write.
type Job struct {
	to  Destination
	end func() error
}

// NewJob returns a job.
func NewJob(to Destination, end func() error) *Job { return &Job{to: to, end: end} }

// Parts returns what NewJob was given.
func (j *Job) Parts() (to Destination, end func() error) { return j.to, j.end }
