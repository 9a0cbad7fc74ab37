package link

// Profile is the profile of the link, with its defaults.
func (l *Link) Profile() Profile { return l.profile }
