package differential

const (
	informed = "An informational answer is sent at once, so that of a first run cannot be thrown away."
	leftOver = "What the first run has left running lives on, and sees the same: it is over."
)

var again = []string{"Optimistic, rewrites"} // the handler runs twice

var differencesOfSecondRun = []difference{
	{
		cases: []string{
			"informational: 103", "informational: 103 arrives at once",
			"informational: 103, then 404",
		},
		variants: again, on: not10,
		lines: []string{"+ informational: *Early Hints", "+ informational: Link: </style.css>; rel=preload"},
		why:   informed,
	},
	{
		cases: []string{"timeout inside: writes afterwards"}, variants: again,
		lines: []string{"+ handler: wrote 0, http: Handler timeout"},
		why:   leftOver,
	},
	{
		cases: []string{"context: ends after the handler"}, variants: again,
		lines: []string{"+ handler: afterwards: context canceled, context canceled"},
		why:   leftOver,
	},
}
