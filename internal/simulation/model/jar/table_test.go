package jar

// table has the number of outcomes with each violation, by start. A violation that a row does not name has no
// outcome there. These are the reasons for the violations that remain:
//
//   - undoneByLogout: a logout is sent before the response to a login arrives, and answered after it. A response
//     cannot make its deletion of a cookie depend on the cookie's value.
//   - undoneByRenew, undoneByRemember: the response to these comes after that to a login, and sets a cookie that
//     the login has made worthless, or that of a session without a user.
//   - undoneByAgain: two logins are done at once. A request claims the newer session, which ends the older one.
//     Then the response to the older login arrives.
//   - undoneByOther: two users log in at once. The later login ends the session of the other user, whose response
//     arrives last. Or one of the logins is done twice, as above.
//   - undoneByAttacker: an attacker logs in as the same user with the planted cookie, and claims the session.
//   - undoneSince, shutSince: no browser has the cookie of the ID to which another has moved. A login or a page
//     still works.
//   - shutOut: an attacker has moved the planted ID. Or the browser has had a moved cookie from the start. Or
//     the response to a Remember of a session without a user comes last, with an ID that has moved meanwhile.
//   - refusesOut: the browser has claimed a session of ann's, and then another response overwrites its cookie: to
//     an older login, a Renew, or bob's login. Or the attacker has logged in as ann.
//   - stillIn, another: a Renew of a session of ann's is answered last. A logout, or bob's login, has not ended
//     that session, since it came more than a minute later with the moved ID. Or two logins of ann's were done at
//     once (which needs four requests), and it came with the cookie of the other one.
//   - writeLost: a Renew has moved the guest's ID to a session without a user, and the response is lost. The
//     next login does not know whose session that is, so it leaves the session alone.
//   - writeAside: beside a login, a write without a cookie, or a navigation with a moved ID, begins a guest's
//     session. Or it claims the older session of two logins, and both stay. Or a Renew moves it to a session
//     without a user.
var table = []row{
	{
		start: Nothing, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {16, 75},
			undoneByRenew:    {8, 30},
			undoneByRemember: {2, 7},
			undoneByOther:    {4, 14},
			undoneSince:      {336, 913},
			shutOut:          {0, 1},
			shutSince:        {416, 824},
			stillIn:          {0, 4},
			another:          {0, 6},
			writeLost:        {1, 1},
			writeAside:       {156, 156},
		},
	},
	{
		start: Guest, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {26, 158},
			undoneByRenew:    {48, 322},
			undoneByRemember: {4, 26},
			undoneByAgain:    {6, 42},
			undoneByOther:    {6, 42},
			undoneSince:      {366, 1582},
			shutOut:          {6, 38},
			shutSince:        {641, 2188},
			stillIn:          {0, 4},
			another:          {0, 6},
			writeLost:        {1, 1},
			writeAside:       {4, 4},
		},
	},
	{
		start: Member, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {188, 1139},
			undoneByRenew:    {48, 256},
			undoneByRemember: {32, 175},
			undoneByAgain:    {6, 42},
			undoneByOther:    {32, 215},
			undoneSince:      {563, 3913},
			shutSince:        {764, 4174},
			stillIn:          {0, 65},
			another:          {0, 99},
			writeAside:       {3, 3},
		},
	},
	{
		start: Dead, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {64, 337},
			undoneByRenew:    {8, 42},
			undoneByRemember: {2, 10},
			undoneByOther:    {4, 20},
			undoneSince:      {352, 1399},
			shutOut:          {0, 2},
			shutSince:        {416, 1544},
			stillIn:          {0, 4},
			another:          {0, 6},
			writeLost:        {1, 1},
			writeAside:       {156, 156},
		},
	},
	{
		start: DeadAndGuest, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {120, 862},
			undoneByRenew:    {48, 429},
			undoneByRemember: {4, 34},
			undoneByAgain:    {6, 55},
			undoneByOther:    {6, 55},
			undoneSince:      {416, 2353},
			shutOut:          {9, 78},
			shutSince:        {641, 3437},
			stillIn:          {0, 4},
			another:          {0, 6},
			writeLost:        {1, 1},
			writeAside:       {4, 4},
		},
	},
	{
		start: MovedAndGuest, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {103, 1539},
			undoneByRenew:    {4, 297},
			undoneByRemember: {4, 54},
			undoneByAgain:    {6, 85},
			undoneByOther:    {6, 85},
			undoneSince:      {338, 4266},
			shutOut:          {10, 84},
			shutSince:        {576, 6652},
			stillIn:          {0, 8},
			another:          {0, 10},
			writeAside:       {2, 2},
		},
	},
	// A user may have one session.
	{
		start: Guest, limit: One, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {26, 154},
			undoneByRenew:    {48, 322},
			undoneByRemember: {4, 26},
			undoneByAgain:    {6, 42},
			undoneByOther:    {6, 42},
			undoneSince:      {414, 1776},
			shutOut:          {6, 38},
			shutSince:        {641, 2137},
			stillIn:          {0, 4},
			another:          {0, 6},
			writeLost:        {1, 1},
			writeAside:       {5, 5},
		},
	},
	{
		start: Elsewhere, limit: One, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {26, 310},
			undoneByRenew:    {48, 669},
			undoneByRemember: {4, 45},
			undoneByAgain:    {6, 72},
			undoneByOther:    {6, 69},
			undoneSince:      {414, 4068},
			shutOut:          {6, 56},
			shutSince:        {641, 4470},
			stillIn:          {0, 10},
			another:          {0, 12},
			writeLost:        {1, 1},
			writeAside:       {5, 5},
		},
	},
	{
		start: Guest, limit: Refuse, requests: 3, of: calls,
		want: map[violation]number{
			undoneByLogout:   {26, 154},
			undoneByRenew:    {48, 322},
			undoneByRemember: {4, 26},
			undoneByAgain:    {6, 42},
			undoneByOther:    {6, 42},
			undoneSince:      {398, 1632},
			shutOut:          {6, 38},
			shutSince:        {673, 2233},
			refusesOut:       {8, 24},
			stillIn:          {0, 4},
			another:          {0, 6},
			writeLost:        {1, 1},
			writeAside:       {4, 4},
		},
	},
	// An attacker has the guest's cookie, too.
	{
		start: Planted, requests: 3, of: attacks,
		want: map[violation]number{
			undoneByAgain:    {3, 33},
			undoneByAttacker: {6, 52},
			undoneSince:      {32, 162},
			shutOut:          {766, 2394},
			shutSince:        {390, 1511},
			writeAside:       {1, 1},
		},
	},
	{
		start: Planted, limit: Refuse, requests: 3, of: attacks,
		want: map[violation]number{
			undoneByAgain:    {3, 33},
			undoneByAttacker: {6, 52},
			undoneSince:      {38, 170},
			shutOut:          {820, 2508},
			shutSince:        {402, 1539},
			refusesOut:       {72, 238},
			writeAside:       {1, 1},
		},
	},
	// Some writes are navigations.
	{
		start: Member, requests: 3, of: pages,
		want: map[violation]number{
			undoneByLogout: {94, 688},
			undoneByRenew:  {6, 100},
			undoneByAgain:  {5, 53},
			undoneSince:    {133, 913},
			shutSince:      {367, 1929},
			stillIn:        {0, 35},
			writeAside:     {160, 160},
		},
	},
	{
		start: MovedAndGuest, requests: 3, of: pages,
		want: map[violation]number{
			undoneByLogout: {53, 985},
			undoneByRenew:  {1, 190},
			undoneByAgain:  {5, 94},
			undoneSince:    {81, 1055},
			shutOut:        {10, 26},
			shutSince:      {298, 3194},
			stillIn:        {0, 2},
			writeAside:     {82, 82},
		},
	},
	// Four requests.
	{
		start: Guest, requests: 4, of: visit,
		want: map[violation]number{
			undoneByLogout: {109, 1561},
			undoneByAgain:  {41, 765},
			undoneSince:    {454, 3952},
			shutSince:      {451, 4217},
			writeAside:     {48, 48},
		},
	},
	{
		start: Nothing, requests: 4, of: calls, slow: true,
		want: map[violation]number{
			undoneByLogout:   {752, 4644},
			undoneByRenew:    {466, 2407},
			undoneByRemember: {106, 563},
			undoneByAgain:    {12, 84},
			undoneByOther:    {148, 778},
			undoneSince:      {10950, 41576},
			shutOut:          {6, 63},
			shutSince:        {11594, 32238},
			stillIn:          {24, 364},
			another:          {40, 711},
			writeLost:        {18, 18},
			writeAside:       {4666, 4666},
		},
	},
	{
		start: Member, requests: 4, of: calls, slow: true,
		want: map[violation]number{
			undoneByLogout:   {3773, 33710},
			undoneByRenew:    {1070, 10541},
			undoneByRemember: {562, 5392},
			undoneByAgain:    {82, 905},
			undoneByOther:    {400, 4635},
			undoneSince:      {15996, 163262},
			shutOut:          {3, 56},
			shutSince:        {10631, 116965},
			stillIn:          {32, 1867},
			another:          {64, 4034},
			writeAside:       {185, 185},
		},
	},
	{
		start: Guest, limit: Refuse, requests: 4, of: again, slow: true,
		want: map[violation]number{
			undoneByLogout: {294, 3338},
			undoneByRenew:  {216, 4407},
			undoneByAgain:  {58, 1040},
			undoneSince:    {1913, 13828},
			shutSince:      {2350, 16041},
			refusesOut:     {164, 964},
			stillIn:        {4, 67},
			writeLost:      {14, 14},
			writeAside:     {130, 130},
		},
	},
	{
		start: Planted, requests: 4, of: attacks, slow: true,
		want: map[violation]number{
			undoneByAgain:    {41, 765},
			undoneByAttacker: {318, 3749},
			undoneSince:      {854, 6982},
			shutOut:          {10944, 43264},
			shutSince:        {5817, 32097},
			writeAside:       {48, 48},
		},
	},
}
